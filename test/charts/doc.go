// Package charts runs operators whose content is a Helm chart on a real control plane: the
// example examples/hello, and charts that are meant to harm.
//
// Package chart, without the s, is about the chart that installs Ensign itself.
package charts
