"""Read-only pages about the last scan: values in, HTML and JSON out.

shown         the scan, its time and the state of the installation
query         a URL's parameters, read once and bounded
pages         scan -> values of each page: first_screen, listing, workload, groups, heat_map, health
words         numbers, ages and zone names for people
rendering     templates -> HTML
what_if       a change -> core.what_if in a worker process, bounded
app           routes and headers, the only module that imports Flask
serving       the app on an address
"""
