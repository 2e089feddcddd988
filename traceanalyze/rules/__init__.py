"""What is wrong, what it costs and what to do: one rule a file, a folder a family.

A rule is a pure generator over `Facts`; it never prints, never reads files and knows no other rule. The engine
(`evaluate`) runs the chosen rules, fills in what their metadata say, makes the savings disjoint and ranks them.
"""
