//go:build before134

package main

import (
	"context"

	"evenspread.io/oracle/fwk"
	corev1 "k8s.io/api/core/v1"
)

func preFilter(ctx context.Context, p fwk.PreFilterPlugin, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	_, status := p.PreFilter(ctx, state, pod)
	return status
}
