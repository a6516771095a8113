"""The documents of `-o json`. The same types make the output, the published schema and the console's input.

explained    `evenspread explain`
planned      `evenspread plan`
scanned      `evenspread audit` and `evenspread skew`
simulated    `evenspread simulate`
"""
