//go:build before137 && !before136

package main

import (
	"context"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// kubernetesVersion is the version of the Kubernetes code compiled in.
const kubernetesVersion = "v1.36.3"

func newCache(ctx context.Context) cache.Cache { return cache.New(ctx, nil, false) }

// frameworkOptions are those that differ between releases, as kube-scheduler's New gives them.
func frameworkOptions(ctx context.Context, factory informers.SharedInformerFactory, c cache.Cache, _ *cache.Snapshot) ([]frameworkruntime.Option, error) {
	slices, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules:   false,
		EnableConsumableCapacity: feature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
	})
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	return []frameworkruntime.Option{
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(c),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	}, nil
}
