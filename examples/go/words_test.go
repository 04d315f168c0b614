package words

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkCount(b *testing.B) {
	for _, length := range []int{200, 2000} {
		var text strings.Builder
		for i := 0; i < length; i++ {
			fmt.Fprintf(&text, "word%d ", i*i%211)
		}
		b.Run(fmt.Sprintf("words=%d", length), func(b *testing.B) {
			for n := 0; n < b.N; n++ {
				Count(text.String())
			}
		})
	}
}
