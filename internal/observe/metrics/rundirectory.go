package metrics

import "github.com/prometheus/client_golang/prometheus"

// RegisterRunDirectory registers the gauge of the artifacts' size on disk. bytes is called at each
// scrape.
func RegisterRunDirectory(registry prometheus.Registerer, bytes func() int64) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ansible_operator_run_directory_bytes", Help: "What the artifacts of ended runs take in the run directory, in bytes.",
	}, func() float64 { return float64(bytes()) })
	return register(registry, gauge)
}
