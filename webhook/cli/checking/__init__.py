"""The checks behind `check`, `audit` and `test`: examine manifests and collect the results."""
