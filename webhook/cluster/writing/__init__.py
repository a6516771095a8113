"""The cluster objects written by evenspread. The admission path writes none."""
