// Package sides compares three ways to run roles side by side: plain ansible-runner, cold
// runs of a manager and warm ones. Single runs take turns (turns.go), many custom
// resources are changed at once (crowd.go), and all of it becomes rows and charts.
//
// What runs, and how its times are taken, is package trial's.
package sides
