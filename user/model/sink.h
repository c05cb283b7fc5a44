/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_SINK_H
#define MODEL_SINK_H

/* Where facts go: the store's writer, or a test's list. Embed it first in your struct. */

#include "model/fact.h"

struct sink {
	void (*put)(struct sink *sink, const struct fact *fact);
};

static inline void sink_put(struct sink *sink, const struct fact *fact)
{
	sink->put(sink, fact);
}

#endif
