/*
 * Copyright 2026 robotid_ros maintainers
 *
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
 * "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */

/*
 * One sample from Python at the least cost: FROM_PYTHON(name) makes of
 *
 *     static void name(const double *q, const double *dq, const double *ddq, const double *constants, double *result)
 *
 * the function name_from_python of Python's stable ABI (METH_FASTCALL) that takes four arrays: q, dq and ddq, shape (1, n),
 * and the result, new. It returns whether it has computed: arrays that are not plain float64 are left to others. Its self is
 * an array (n, constants...). Neither Python's headers nor numpy's are needed: OBJECT_HEAD is
 * object.__basicsize__, and what follows in an array is PyArrayObject_fields, which kernel.py compares with an array.
 */
#include <stddef.h>

typedef struct {
    const void *data;
    int dimensions;
    const ptrdiff_t *shape, *strides;
    const void *base, *type;
    int flags;
} Fields;

void *PyBool_FromLong(long);

enum { CONTIGUOUS_AND_ALIGNED = 0x101 };

static inline const Fields *fields_of(const void *object) { return (const Fields *)((const char *)object + OBJECT_HEAD); }

static inline const void *class_of(const void *object)
{
    return *(const void *const *)((const char *)object + OBJECT_HEAD - sizeof(void *));
}

/* The numbers of an array of shape (1, n) that is like self in class and number type; else NULL. */
static inline const double *sample_in(const void *object, const void *self, ptrdiff_t n)
{
    const Fields *array = fields_of(object);
    const int plain = class_of(object) == class_of(self) && array->type == fields_of(self)->type && array->dimensions == 2
        && array->shape[0] == 1 && array->shape[1] == n
        && (array->flags & CONTIGUOUS_AND_ALIGNED) == CONTIGUOUS_AND_ALIGNED;
    return plain ? array->data : NULL;
}

#define FROM_PYTHON(name)                                                                                                   \
    void *name##_from_python(void *self, void *const *given, ptrdiff_t count)                                               \
    {                                                                                                                       \
        const double *own = fields_of(self)->data;                                                                          \
        const ptrdiff_t n = (ptrdiff_t)own[0];                                                                              \
        const double *q, *dq, *ddq;                                                                                         \
        const int plain = count == 4 && (q = sample_in(given[0], self, n)) && (dq = sample_in(given[1], self, n))           \
            && (ddq = sample_in(given[2], self, n));                                                                        \
        if (plain) {                                                                                                        \
            name(q, dq, ddq, own + 1, (double *)fields_of(given[3])->data);                                                 \
        }                                                                                                                   \
        return PyBool_FromLong(plain);                                                                                      \
    }
