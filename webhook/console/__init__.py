"""Read-only pages about the last scan, as HTML and JSON.

shown         the scan, its time and the status of the installation
query         the parameters of a URL, parsed once, with limits
pages         the data of each page: first_screen, listing, workload, groups, heat_map, health
words         numbers, ages and zone names formatted for people
rendering     HTML from templates
what_if       what-if simulations (core.what_if) in a worker process, with limits
app           routes and headers, the only module that imports Flask
serving       the HTTP server for the app
"""
