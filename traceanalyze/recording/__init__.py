"""Recording: a script or a loop under the profiler, into a folder that every command takes as it is.

torch is imported only when a recording begins.
"""
