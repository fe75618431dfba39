package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Check returns everything that is wrong with the settings that only commands have, alone or
// together, and with environment variables. Packages options and operator check the others.
func (o Options) Check() error {
	_, debug := o.Env.debugLogs()
	return errors.Join(o.checkListeners(), o.CheckEnvironment(), o.Env.checkNamespaces(), debug)
}

// CheckEnvironment returns the errors of the environment variables that every manager reads.
func (o Options) CheckEnvironment() error {
	return errors.Join(o.Env.checkOneOf("ANSIBLE_GATHERING", "implicit", "explicit", "smart"), o.checkInventory())
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// listener is an address at which the manager listens, and the flag that sets it.
type listener struct {
	flag, value string
	host        string
	port        int // 0: any free port, or the listener is off
}

// checkListeners checks the addresses, and that no two listeners need the same port.
func (o Options) checkListeners() error {
	atPort := func(flag string, port int) listener {
		return listener{flag: flag, value: strconv.Itoa(port), host: "127.0.0.1", port: port}
	}
	metrics, metricsErr := parseAddress("--metrics-bind-address", o.MetricsBindAddress)
	probes, probesErr := parseAddress("--health-probe-bind-address", o.HealthProbeBindAddress)
	userMetrics, _ := parseAddress("--user-metrics-bind-address", cmp.Or(o.UserMetricsBindAddress, "0")) // Its own Check reports it.
	pprof, pprofErr := parseAddress("--pprof-bind-address", cmp.Or(o.PprofBindAddress, "0"))
	errs := []error{metricsErr, probesErr, pprofErr}
	if pprof.value != "" && !IsLoopback(pprof.value) {
		errs = append(errs, fmt.Errorf("%s=%s: allowed is a loopback address such as 127.0.0.1:6060, because everybody who reaches it may read profiles and use up the processor", pprof.flag, pprof.value))
	}
	listeners := []listener{metrics, probes, userMetrics, pprof, atPort("--proxy-port", o.ProxyPort), atPort("--proxy-open-port", o.ProxyOpenPort)}
	for i, l := range listeners {
		for _, other := range listeners[:i] {
			if l.conflictsWith(other) {
				errs = append(errs, fmt.Errorf("%s=%s and %s=%s are the same port: choose another for one of them", other.flag, other.value, l.flag, l.value))
			}
		}
	}
	return errors.Join(errs...)
}

func (l listener) conflictsWith(other listener) bool {
	isWildcard := func(host string) bool { return slices.Contains([]string{"", "0.0.0.0", "::"}, host) }
	return l.port != 0 && l.port == other.port && (l.host == other.host || isWildcard(l.host) || isWildcard(other.host))
}

// IsLoopback reports whether the address can be reached only from this host, or this pod.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// parseAddress parses the address of a listener. "0" gives the zero listener, which is off.
func parseAddress(flag, value string) (listener, error) {
	if value == "0" {
		return listener{}, nil
	}
	host, name, err := net.SplitHostPort(value)
	port, portErr := strconv.ParseUint(name, 10, 16)
	if err != nil || portErr != nil {
		return listener{}, fmt.Errorf("%s=%s: allowed is an address such as :8443 or 127.0.0.1:8443, or 0 for none", flag, value)
	}
	return listener{flag, value, host, int(port)}, nil
}

func (e Environment) checkNamespaces() error {
	for _, namespace := range e.Namespaces() {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("environment variable WATCH_NAMESPACE: invalid namespace name %q: write names joined by commas, or nothing for all namespaces", namespace)
		}
	}
	return nil
}

// checkOneOf returns an error if the variable has a value that is not allowed. An empty
// one is allowed.
func (e Environment) checkOneOf(name string, allowed ...string) error {
	if value := e[name]; value != "" && !slices.Contains(allowed, value) {
		return fmt.Errorf("environment variable %s=%s: allowed are %s", name, value, strings.Join(allowed, ", "))
	}
	return nil
}

// checkInventory checks that the inventory can be copied for each run: it must be one
// file or directory.
func (o Options) checkInventory() error {
	path := o.Inventory()
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("environment variable ANSIBLE_INVENTORY: name one file or directory, of which each run gets a copy: %w", err)
	}
	return nil
}

// debugLogs returns the value of ANSIBLE_DEBUG_LOGS, false by default.
func (e Environment) debugLogs() (bool, error) {
	on, err := strconv.ParseBool(cmp.Or(e["ANSIBLE_DEBUG_LOGS"], "false"))
	if err != nil {
		return false, fmt.Errorf("environment variable ANSIBLE_DEBUG_LOGS=%s: allowed are true and false", e["ANSIBLE_DEBUG_LOGS"])
	}
	return on, nil
}
