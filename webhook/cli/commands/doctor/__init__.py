"""What is wrong with an installation: facts from get, list and one dry run, and judgements that need nothing else."""
