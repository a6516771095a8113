//go:build !before137

package main

import "k8s.io/apiserver/pkg/registry/rest"

var validateCreate = rest.ValidateCreate
