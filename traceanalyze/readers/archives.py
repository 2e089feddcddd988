"""Zip archives of traces: their members are read as streams and never unpacked to disk."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.detect import Kind, sniff
