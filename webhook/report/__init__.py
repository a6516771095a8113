"""Report documents and event texts of scanned workloads."""
