// SPDX-License-Identifier: Apache-2.0
/* Returns 0, or the line of the first check that failed. */
int c99_program(void);

int main(void) { return c99_program() == 0 ? 0 : 1; }
