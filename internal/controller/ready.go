package controller

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// Readies collects conditions Ready, each different one once. Its zero value has none.
type Readies struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Add adds a condition.
func (s *Readies) Add(condition map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if len(s.seen) < 100 { // Otherwise nothing bounds the conditions that content writes.
		s.seen[fmt.Sprint(condition)] = true // Maps are printed with sorted keys.
	}
}

// addWritten adds the conditions that operations write.
func (s *Readies) addWritten(operations []status.Operation) {
	for _, o := range operations {
		if value, _ := o.Value.(map[string]any); value["type"] == string(status.Ready) {
			s.Add(value)
		}
	}
}

// addOf adds the conditions of a status.
func (s *Readies) addOf(cr *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, c := range conditions {
		if value, _ := c.(map[string]any); value["type"] == string(status.Ready) {
			s.Add(value)
		}
	}
}

// beyond reports whether there is a condition that others does not have.
func (s *Readies) beyond(others *Readies) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for condition := range s.seen {
		if !others.seen[condition] {
			return true
		}
	}
	return false
}
