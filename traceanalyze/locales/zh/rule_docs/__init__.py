"""Documents of the rules in Chinese: a module a family, named like the folder of its rules, read when one is asked for.

`DOCS` is id → the rule's docstring in Chinese, with the sections of the English one in the same order.
"""
