"""A report is data (`model.py`); builders make it from analyses, renderers show it and know nothing else."""
