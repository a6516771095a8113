"""The documents of `-o json`. The same types make the output, the published schema and the console's input.

audited      `evenspread check` and `evenspread audit`
explained    `evenspread explain`
fleet        `evenspread audit` of several clusters
planned      `evenspread plan`
scanned      `evenspread skew`, and the console
simulated    `evenspread simulate`
"""
