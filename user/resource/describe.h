/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_DESCRIBE_H
#define RESOURCE_DESCRIBE_H

/* A view that a rule holds for, in words and figures. */

#include "resource/view.h"

void describe(const struct view *view, enum fault_class class,
	      struct finding *ret_finding);

/* describe_part() - what another finding adds to @whole, of which it is a part. */
void describe_part(struct finding *whole, const struct finding *part);

#endif
