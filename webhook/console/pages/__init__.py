"""The pages: scan -> values of each template, with shared summaries of workloads and pictures of counts."""
