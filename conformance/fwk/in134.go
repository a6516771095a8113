//go:build before135 && !before134

package fwk

import (
	upstream "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type (
	PreFilterResult  = framework.PreFilterResult
	CycleState       = upstream.CycleState
	NodeInfo         = upstream.NodeInfo
	Status           = upstream.Status
	Plugin           = framework.Plugin
	Handle           = framework.Handle
	FilterPlugin     = framework.FilterPlugin
	PreFilterPlugin  = framework.PreFilterPlugin
	NodeScore        = framework.NodeScore
	NodeScoreList    = framework.NodeScoreList
	SharedDRAManager = framework.SharedDRAManager
)

const (
	Success                      = upstream.Success
	Error                        = upstream.Error
	UnschedulableAndUnresolvable = upstream.UnschedulableAndUnresolvable
)

var NewStatus = upstream.NewStatus
