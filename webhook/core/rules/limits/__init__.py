"""How large an object may be for rules to look at it, and what looking at it costs, known before it is looked at."""
