"""What the host does: operators, modules, Python lines, annotations, and which device work they launch."""
