"""``python -m evenspread``: the command line where no script was installed, as in the image."""

from evenspread import run

if __name__ == "__main__":
    run()
