"""Run the command line with ``python -m evenspread``, as the image does: it has no installed script."""

from evenspread import run

if __name__ == "__main__":
    run()
