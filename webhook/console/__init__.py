"""Read-only pages over what a scan found: values in, HTML and JSON out.

shown         what a process hands over: the scan, when it was so, how the installation stands
query         a URL's parameters, read once and bounded
pages         scan -> what each page shows: first_screen, listing, workload, groups, heat_map, health
words         numbers, ages and zones as people read them         rendering   templates -> HTML
what_if       a change -> core.what_if in a worker process, bounded
app           routes and headers, the only file that knows Flask
serving       the app on an address
"""
