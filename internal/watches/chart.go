package watches

// Chart is the Helm chart of a watch.
type Chart struct {
	// Path is the absolute path of a chart's directory or archive.
	Path string
}
