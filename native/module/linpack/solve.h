/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * LINPACK's inner work, the same source for the kernel module and for its twin
 * in user space. Pointers to double only: callers in the kernel have no
 * floating point.
 */
#ifndef AJUSTE_LINPACK_SOLVE_H
#define AJUSTE_LINPACK_SOLVE_H

#define LINPACK_N 200
#define LINPACK_LEADING (LINPACK_N + 1)

/* LINPACK_N columns of LINPACK_LEADING elements, and their sum. */
void linpack_generate(double *a, double *b);
void linpack_dgefa(double *a, unsigned int *pivots);
void linpack_dgesl(const double *a, const unsigned int *pivots, double *b);

#endif
