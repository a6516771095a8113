"""The shared part of placement rules: a template in the cluster, its losses and its fixes."""
