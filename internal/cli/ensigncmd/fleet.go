package ensigncmd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/fleet"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/watches"
)

// kindsHelp says for the help of these commands which kinds there are.
const kindsHelp = `
KIND is a kind of watches.yaml (--watches-file) as kubectl takes it: greeting,
greetings, greetings.demo.example.com. It may also be any other kind that the
cluster serves, such as one that a program watches in Go, also by its short name.`

// fleetFlags are common to the commands that show and control the resources of a cluster.
type fleetFlags struct {
	run           *cli.Flags
	namespace     string
	allNamespaces bool
}

func (f *fleetFlags) register(cmd *cobra.Command, namespaceUsage string) {
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVarP(&f.namespace, "namespace", "n", "", namespaceUsage)
	for _, name := range []string{"watches-file", "kubeconfig"} {
		set.AddFlag(f.run.Lookup(name))
	}
}

// options returns the settings that matter without a manager.
func (f *fleetFlags) options() (config.Options, error) {
	o, err := f.run.Complete(io.Discard)
	if err != nil {
		return o, err
	}
	o.Logger = logr.Discard() // The result that counts is returned.
	err = cli.Here(&o)
	return o, err
}

// openInput opens a file, or standard input for "-".
func openInput(cmd *cobra.Command, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	return os.Open(file)
}

// watches returns those of watches.yaml; nil if there is no such file, and nobody named one.
func (f *fleetFlags) watches(o config.Options) ([]watches.Watch, error) {
	if _, err := os.Stat(o.WatchesFile); errors.Is(err, os.ErrNotExist) && !f.run.Lookup("watches-file").Changed {
		return nil, nil
	}
	list, err := operator.Watches(o)
	if err == nil && list == nil {
		list = []watches.Watch{} // The file is there, and watches nothing.
	}
	return list, err
}

// clusterOf has the parts of the cluster that these commands need.
type clusterOf struct {
	*cli.Cluster

	// watching is a client that can watch, too.
	watching client.WithWatch
	finder   kinds.Finder
	options  config.Options
}

func (f *fleetFlags) connect() (*clusterOf, error) {
	o, list, err := f.settings()
	if err != nil {
		return nil, err
	}
	return connectWith(o, list)
}

// settings returns the options and the watches.
func (f *fleetFlags) settings() (o config.Options, list []watches.Watch, err error) {
	if o, err = f.options(); err == nil {
		list, err = f.watches(o)
	}
	return o, list, err
}

func connectWith(o config.Options, list []watches.Watch) (*clusterOf, error) {
	cluster, err := cli.Connect(o)
	if err != nil {
		return nil, err
	}
	watching, err := client.NewWithWatch(cluster.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return &clusterOf{cluster, watching, kinds.Finder{Watches: list, Config: cluster.Config}, o}, nil
}

// targets returns the targets of the arguments KIND or KIND/NAME; all kinds if there are none.
func (c *clusterOf) targets(args []string, group string) (targets []fleet.Target, err error) {
	if len(args) == 0 {
		all, err := c.finder.All(group)
		for _, kind := range all {
			targets = append(targets, fleet.Target{Kind: kind})
		}
		return targets, err
	}
	for _, arg := range args {
		word, name, err := kinds.Split(arg)
		if err != nil {
			return nil, err
		}
		kind, err := c.finder.Find(word)
		if err != nil {
			return nil, err
		}
		targets = append(targets, fleet.Target{Kind: kind, Name: name})
	}
	return targets, nil
}
