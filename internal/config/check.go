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

// Check finds what is wrong with settings, and with settings together, that can be
// told without a look at content or at the API server: all of it at once.
func (o Options) Check() error { return o.check(fileExists) }

// check is Check where exists reports whether there is a file.
func (o Options) check(exists func(path string) bool) error {
	_, debug := o.Env.debugLogs()
	return errors.Join(
		o.checkListeners(),
		o.checkElection(exists),
		o.checkDropEnv(),
		o.Env.checkNamespaces(),
		o.Env.oneOf("ANSIBLE_GATHERING", "implicit", "explicit", "smart"),
		o.checkInventory(),
		debug,
	)
}

// listener is where the manager listens, by the flag that says so.
type listener struct {
	flag, value string
	host        string
	port        int // 0: any, or none
}

// checkListeners reads the addresses and refuses two that can't both be had.
func (o Options) checkListeners() error {
	proxies := func(flag string, port int) listener {
		return listener{flag: flag, value: strconv.Itoa(port), host: "127.0.0.1", port: port}
	}
	metrics, metricsErr := parseAddress("--metrics-bind-address", o.MetricsBindAddress)
	probes, probesErr := parseAddress("--health-probe-bind-address", o.HealthProbeBindAddress)
	posts, postsErr := parseAddress("--user-metrics-bind-address", o.UserMetricsBindAddress)
	profiles, profilesErr := parseAddress("--pprof-bind-address", cmp.Or(o.PprofBindAddress, "0"))
	errs := []error{metricsErr, probesErr, postsErr, profilesErr}
	if profiles.value != "" && !AtLoopback(profiles.value) {
		errs = append(errs, fmt.Errorf("%s=%s: allowed is a loopback address such as 127.0.0.1:6060, because whoever reaches it may read profiles and use up the processor", profiles.flag, profiles.value))
	}
	all := []listener{metrics, probes, posts, profiles, proxies("--proxy-port", o.ProxyPort), proxies("--proxy-open-port", o.ProxyOpenPort)}
	for i, l := range all {
		for _, other := range all[:i] {
			if l.meets(other) {
				errs = append(errs, fmt.Errorf("%s=%s and %s=%s are the same port: choose another for one of them", other.flag, other.value, l.flag, l.value))
			}
		}
	}
	return errors.Join(errs...)
}

func (l listener) meets(other listener) bool {
	everywhere := func(host string) bool { return slices.Contains([]string{"", "0.0.0.0", "::"}, host) }
	return l.port != 0 && l.port == other.port && (l.host == other.host || everywhere(l.host) || everywhere(other.host))
}

// AtLoopback reports whether only this host, or pod, reaches the address.
func AtLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// parseAddress reads the address of a listener; "0" is none.
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

func (o Options) checkDropEnv() error {
	for _, name := range o.DropEnv {
		if name == "" || strings.ContainsAny(name, "= \t") {
			return fmt.Errorf("--drop-env: %q is no name of an environment variable: write names joined by commas, without values", name)
		}
	}
	return nil
}

func (e Environment) checkNamespaces() error {
	for _, namespace := range e.Namespaces() {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("environment variable WATCH_NAMESPACE: %q is no name of a namespace: write names joined by commas, or nothing for all namespaces", namespace)
		}
	}
	return nil
}

// oneOf refuses another value than those. A variable that is empty says nothing.
func (e Environment) oneOf(name string, allowed ...string) error {
	if value := e[name]; value != "" && !slices.Contains(allowed, value) {
		return fmt.Errorf("environment variable %s=%s: allowed are %s", name, value, strings.Join(allowed, ", "))
	}
	return nil
}

// checkInventory wants what each run can copy.
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

// debugLogs returns what ANSIBLE_DEBUG_LOGS says.
func (e Environment) debugLogs() (bool, error) {
	on, err := strconv.ParseBool(cmp.Or(e["ANSIBLE_DEBUG_LOGS"], "false"))
	if err != nil {
		return false, fmt.Errorf("environment variable ANSIBLE_DEBUG_LOGS=%s: allowed are true and false", e["ANSIBLE_DEBUG_LOGS"])
	}
	return on, nil
}
