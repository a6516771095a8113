//go:build before134

package fwk

import "k8s.io/kubernetes/pkg/scheduler/framework"

type (
	PreFilterResult = framework.PreFilterResult
	CycleState      = *framework.CycleState
	NodeInfo        = *framework.NodeInfo
	Status          = framework.Status
	Plugin          = framework.Plugin
	Handle          = framework.Handle
	FilterPlugin    = framework.FilterPlugin
	PreFilterPlugin = framework.PreFilterPlugin
	NodeScore       = framework.NodeScore
	NodeScoreList   = framework.NodeScoreList
)

const (
	Success                      = framework.Success
	Error                        = framework.Error
	UnschedulableAndUnresolvable = framework.UnschedulableAndUnresolvable
)

var NewStatus = framework.NewStatus
