"""`python -m homing` is the command `homing`."""

import sys

from homing.cli import main

sys.exit(main())
