"""`python -m tests.pinned [ROOM ...]`: fingerprints of some rooms, or of all, are written anew."""

import sys

from tests.pinned import main

main(sys.argv[1:])
