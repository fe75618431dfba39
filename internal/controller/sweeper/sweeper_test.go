package sweeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// memoryDirectories holds the UIDs of directories.
type memoryDirectories struct {
	uids   []string
	sweeps int
}

func (d *memoryDirectories) UIDs() ([]string, error) { return slices.Clone(d.uids), nil }

func (d *memoryDirectories) Sweep(keep func(string) bool) ([]string, error) {
	d.sweeps++
	var removed, kept []string
	for _, uid := range d.uids {
		if keep(uid) {
			kept = append(kept, uid)
		} else {
			removed = append(removed, uid)
		}
	}
	d.uids = kept
	return removed, nil
}

// listFunc is a client.Reader that answers lists of metadata.
type listFunc func(kind, namespace string, page *metav1.PartialObjectMetadataList) error

func (f listFunc) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.ErrUnsupported
}

func (f listFunc) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	applied := (&client.ListOptions{}).ApplyOptions(options)
	page := list.(*metav1.PartialObjectMetadataList)
	page.Items, page.Continue = nil, applied.Continue
	return f(page.Kind, applied.Namespace, page)
}

// memoryDiscovery holds the served kinds by group and version, such as "g/v1".
type memoryDiscovery map[string][]string

func (k memoryDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	if k == nil {
		return nil, errors.New("no answer")
	}
	list := &metav1.APIGroupList{}
	for gv := range k {
		group, version, found := strings.Cut(gv, "/")
		if !found {
			group, version = "", gv
		}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: gv, Version: version}}})
	}
	return list, nil
}

func (k memoryDiscovery) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: gv}
	for _, kind := range k[gv] {
		if kind == "" {
			return nil, apierrors.NewServiceUnavailable("no answer")
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return list, nil
}

func TestSweep(t *testing.T) {
	items := func(uids ...types.UID) []metav1.PartialObjectMetadata {
		var found []metav1.PartialObjectMetadata
		for _, uid := range uids {
			found = append(found, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}})
		}
		return found
	}
	everything := []string{"a1", "a2", "b", "gone"}
	both := memoryDiscovery{"v1": {"A", "A", "B"}, "other/v1": {"C"}}
	for why, test := range map[string]struct {
		namespaces []string
		kinds      memoryDiscovery
		list       listFunc
		want       []string
	}{
		"what has no CR goes, over all pages and kinds": {
			kinds: both,
			list: func(kind, _ string, page *metav1.PartialObjectMetadataList) error {
				switch {
				case kind == "BList":
					page.Items, page.Continue = items("b"), ""
				case page.Continue == "":
					page.Items, page.Continue = items("a1"), "next"
				default:
					page.Items, page.Continue = items("a2"), ""
				}
				return nil
			},
			want: []string{"a1", "a2", "b"},
		},
		"a kind that is not served has no CRs": {
			kinds: memoryDiscovery{"v1": {"A"}, "other/v1": {"B"}},
			list: func(kind, _ string, page *metav1.PartialObjectMetadataList) error {
				if kind == "BList" {
					return errors.New("it must not be asked for")
				}
				page.Items = items("a1")
				return nil
			},
			want: []string{"a1"},
		},
		"a kind that is served in another version only still has its CRs": {
			kinds: memoryDiscovery{"v1": {"A"}, "v2": {"B"}},
			list: func(kind, _ string, page *metav1.PartialObjectMetadataList) error {
				switch page.APIVersion + kind {
				case "v1AList":
					page.Items = items("a1")
				case "v2BList":
					page.Items = items("b")
				default:
					return errors.New("it is not served")
				}
				return nil
			},
			want: []string{"a1", "b"},
		},
		"nothing goes when the groups cannot be read": {
			list: func(_, _ string, _ *metav1.PartialObjectMetadataList) error { return nil },
			want: everything,
		},
		"nothing goes when a version of the group cannot be read, which may have the kind": {
			kinds: memoryDiscovery{"v1": {"A"}, "v2": {""}},
			list:  func(_, _ string, _ *metav1.PartialObjectMetadataList) error { return nil },
			want:  everything,
		},
		"nothing goes when a kind is gone between the two questions": {
			kinds: both,
			list: func(kind, _ string, _ *metav1.PartialObjectMetadataList) error {
				if kind == "BList" {
					return apierrors.NewNotFound(schema.GroupResource{}, "")
				}
				return nil
			},
			want: everything,
		},
		"nothing goes when the second page cannot be read": {
			kinds: both,
			list: func(_, _ string, page *metav1.PartialObjectMetadataList) error {
				if page.Continue != "" {
					return apierrors.NewResourceExpired("too old")
				}
				page.Items, page.Continue = items("a1"), "next"
				return nil
			},
			want: everything,
		},
		"nothing goes when a kind cannot be listed": {
			kinds: both,
			list: func(_, _ string, _ *metav1.PartialObjectMetadataList) error {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
			},
			want: everything,
		},
		"every watched namespace is asked": {
			kinds:      both,
			namespaces: []string{"n1", "n2"},
			list: func(_, namespace string, page *metav1.PartialObjectMetadataList) error {
				page.Items = items(map[string]types.UID{"n1": "a1", "n2": "b"}[namespace])
				return nil
			},
			want: []string{"a1", "b"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			directories := &memoryDirectories{uids: slices.Clone(everything)}
			Sweeper{
				Directories: directories, Reader: test.list, Discovery: test.kinds, Namespaces: test.namespaces, Logger: logr.Discard(),
				Watches: []watches.Watch{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "A"}}, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "B"}}},
			}.sweep(t.Context())
			if diff := cmp.Diff(test.want, directories.uids); diff != "" {
				t.Errorf("directories that stay (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADirectoryMadeDuringTheListsIsKept(t *testing.T) {
	directories := &memoryDirectories{uids: []string{"old"}}
	list := listFunc(func(string, string, *metav1.PartialObjectMetadataList) error {
		directories.uids = append(directories.uids, "new")
		return nil
	})
	kinds := memoryDiscovery{"v1": {"A"}}
	s := Sweeper{Directories: directories, Reader: list, Discovery: kinds, Watches: []watches.Watch{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "A"}}}, Logger: logr.Discard()}
	s.sweep(t.Context())
	if diff := cmp.Diff([]string{"new"}, directories.uids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A CR may be deleted between two sweeps, and a sweep may fail.
func TestStartSweepsUntilTheContextEnds(t *testing.T) {
	directories := &memoryDirectories{uids: []string{"live", "gone"}}
	ctx, cancel := context.WithTimeout(t.Context(), scratch.WaitTimeout)
	defer cancel()
	looks := 0
	list := listFunc(func(_, _ string, page *metav1.PartialObjectMetadataList) error {
		page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{UID: "live"}}}
		switch looks++; looks {
		case 1:
			return errors.New("no answer")
		case 3:
			cancel()
		}
		return nil
	})
	s := Sweeper{
		Directories: directories, Reader: list, Discovery: memoryDiscovery{"v1": {"A"}}, interval: time.Millisecond, Logger: logr.Discard(),
		Watches: []watches.Watch{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "A"}}},
	}
	if err := s.Start(ctx); err != nil {
		t.Errorf("a sweep stops no manager, got %v", err)
	}
	if diff := cmp.Diff([]string{"live"}, directories.uids); diff != "" || looks < 3 {
		t.Errorf("after %d looks (-want +got):\n%s", looks, diff)
	}
}

// The retry of a removal needs no response of the API server.
func TestADirectoryThatCouldNotBeRemovedIsRetried(t *testing.T) {
	directories := &memoryDirectories{uids: []string{"a"}}
	Sweeper{Directories: directories, Logger: logr.Discard(), Discovery: memoryDiscovery(nil)}.sweep(t.Context())
	if directories.sweeps != 1 || len(directories.uids) != 1 {
		t.Errorf("got %d sweeps and %q left, want one that removes nothing", directories.sweeps, directories.uids)
	}
}
