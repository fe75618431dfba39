// Package chart installs, upgrades and uninstalls charts/ensign with the real helm on the
// embedded control plane, and compares what the chart renders with config/.
//
// Nothing runs in the pods there. So a spec plays the kubelet for the Job of the uninstall
// check: it runs the Job's command with its environment and its account's token, and
// reports the exit code as the pod's.
//
// Docs: docs/howto-helm.md, whose table of values a spec checks.
package chart
