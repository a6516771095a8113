"""The parts of a rule, and the questions that several rules share."""
