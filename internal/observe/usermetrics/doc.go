// Package usermetrics takes the metrics that roles post and shows them beside the
// manager's own. A post is one JSON object, as operator_sdk.util.osdk_metric sends it:
//
//	{"name": "backups", "description": "Backups made.", "counter": {"increment": true}}
//
// Registry holds the metrics within bounds: how many there are and what they are called,
// so that no role can fill the manager's memory or break its metrics endpoint. Endpoint
// is the HTTP server in front of it.
//
// It does not touch the manager's own metrics, and does not know runs or tokens: a
// function tells it who may post.
package usermetrics
