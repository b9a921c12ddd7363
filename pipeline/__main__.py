"""`python -m pipeline`: see `pipeline.cli.run`."""

import sys

from pipeline.cli.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
