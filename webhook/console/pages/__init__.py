"""Build the template values of each console page from a scan.

The package also has the summaries of workloads and the charts of pod counts shared by the pages.
"""
