// Package usermetrics accepts the metrics that roles post, and exposes them beside the manager's
// own. A post is one JSON object, as operator_sdk.util.osdk_metric sends it:
//
//	{"name": "backups", "description": "Backups made.", "counter": {"increment": true}}
//
// Registry has the metrics. It bounds their number and checks their names, so that no role can
// fill the manager's memory or break its metrics endpoint. Endpoint is the HTTP server to which
// roles post.
//
// The package does not change the manager's own metrics. It does not know runs or tokens:
// Options.Allow tells who may post.
package usermetrics
