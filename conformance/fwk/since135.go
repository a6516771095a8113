//go:build !before135

// Package fwk names the scheduler framework's types as Kubernetes 1.37 does, whatever the release.
package fwk

import (
	upstream "k8s.io/kube-scheduler/framework"
)

type (
	PreFilterResult  = upstream.PreFilterResult
	CycleState       = upstream.CycleState
	NodeInfo         = upstream.NodeInfo
	Status           = upstream.Status
	Plugin           = upstream.Plugin
	Handle           = upstream.Handle
	FilterPlugin     = upstream.FilterPlugin
	PreFilterPlugin  = upstream.PreFilterPlugin
	NodeScore        = upstream.NodeScore
	NodeScoreList    = upstream.NodeScoreList
	SharedDRAManager = upstream.SharedDRAManager
)

const (
	Success                      = upstream.Success
	Error                        = upstream.Error
	UnschedulableAndUnresolvable = upstream.UnschedulableAndUnresolvable
)

var NewStatus = upstream.NewStatus
