//go:build !before134

package main

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func registerResources(register func(string, runtime.Object)) {
	register("ResourceClaim", &resourcev1.ResourceClaim{})
	register("ResourceSlice", &resourcev1.ResourceSlice{})
	register("DeviceClass", &resourcev1.DeviceClass{})
}
