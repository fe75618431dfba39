package operator

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
)

// memoryDirectories are directories by UID.
type memoryDirectories struct{ uids []string }

func (d *memoryDirectories) UIDs() ([]string, error) { return slices.Clone(d.uids), nil }

func (d *memoryDirectories) Sweep(keep func(string) bool) ([]string, error) {
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

// listFunc answers lists of metadata.
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

func TestSweeping(t *testing.T) {
	items := func(uids ...types.UID) []metav1.PartialObjectMetadata {
		var found []metav1.PartialObjectMetadata
		for _, uid := range uids {
			found = append(found, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}})
		}
		return found
	}
	for why, test := range map[string]struct {
		namespaces []string
		list       listFunc
		want       []string
	}{
		"what has no CR goes, over all pages and kinds": {
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
			list: func(kind, _ string, page *metav1.PartialObjectMetadataList) error {
				if kind == "BList" {
					return apierrors.NewNotFound(schema.GroupResource{}, "")
				}
				page.Items = items("a1")
				return nil
			},
			want: []string{"a1"},
		},
		"nothing goes when a kind cannot be listed": {
			list: func(_, _ string, _ *metav1.PartialObjectMetadataList) error {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
			},
			want: []string{"a1", "a2", "b", "gone"},
		},
		"every watched namespace is asked": {
			namespaces: []string{"n1", "n2"},
			list: func(_, namespace string, page *metav1.PartialObjectMetadataList) error {
				page.Items = items(map[string]types.UID{"n1": "a1", "n2": "b"}[namespace])
				return nil
			},
			want: []string{"a1", "b"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			directories := &memoryDirectories{uids: []string{"a1", "a2", "b", "gone"}}
			err := sweeper{
				directories: directories, reader: test.list, namespaces: test.namespaces, log: logr.Discard(),
				watches: []watches.Watch{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "A"}}, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "B"}}},
			}.Start(t.Context())
			if err != nil {
				t.Errorf("a sweep stops no manager, got %v", err)
			}
			if diff := cmp.Diff(test.want, directories.uids); diff != "" {
				t.Errorf("directories that stay (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADirectoryThatCameDuringTheListsStays(t *testing.T) {
	directories := &memoryDirectories{uids: []string{"old"}}
	list := listFunc(func(string, string, *metav1.PartialObjectMetadataList) error {
		directories.uids = append(directories.uids, "new")
		return nil
	})
	s := sweeper{directories: directories, reader: list, watches: []watches.Watch{{}}, log: logr.Discard()}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new"}, directories.uids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
