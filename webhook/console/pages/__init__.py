"""The pages: scan -> what each template shows, and what pages share: a workload in a line, and counts as pictures."""
