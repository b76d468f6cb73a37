/* The point that a worker returns to after each request, and the way back.
 *
 * A rollback runs on a stack of its own with all signals blocked, puts back what the kernel knows
 * (kernel.c), then memory (hot.c), then the stack, and returns once more from the getcontext() in
 * samovar_rollback_here(). */
#define _GNU_SOURCE
#include "samovar.h"
#include "image.h"
#include <zend_fibers.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

enum {
    RESTORE_STACK_BYTES = 256 << 10,
    RED_ZONE = 128, /* below the stack pointer and still in use (x86-64 ABI) */
    STACK_BYTES_MAX = 8 << 20
};

image_survivors *samovar_survivors;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

_Noreturn void samovar_leave_for(leave_reason reason) {
    samovar_leave((int)reason);
    _exit(SAMOVAR_EXIT_REPLACE);
}

static char *stack_pointer(const ucontext_t *context) {
#if defined(__x86_64__)
    return (char *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (char *)context->uc_mcontext.sp;
#else
#error "which register is the stack pointer?"
#endif
}

/* Runs on the survivors' stack. Nothing here may rely on memory that is being put back. */
static void restore(void) {
    image_survivors *s = samovar_survivors;
    const uint64_t from = now_ns();
    const bool touched = samovar_hot_touched(s);
    samovar_kernel_restore(s, touched);
    samovar_hot_restore(s, touched);
    memcpy(s->stack_low, s->stack_copy, s->stack_len);
    s->rollbacks++;
    s->rollback_ns = now_ns() - from;
    setcontext(&s->resume);
    _exit(71); /* Only a broken context gets here. */
}

_Noreturn void samovar_roll_back(void) {
    setcontext(&samovar_survivors->restore);
    _exit(71);
}

static bool prepare_restore(image_survivors *s) {
    char *stack = samovar_shared_memory(RESTORE_STACK_BYTES);
    if (!stack || getcontext(&s->restore) != 0) {
        return false;
    }
    s->restore.uc_stack.ss_sp = stack;
    s->restore.uc_stack.ss_size = RESTORE_STACK_BYTES;
    s->restore.uc_link = NULL;
    sigfillset(&s->restore.uc_sigmask);
    makecontext(&s->restore, restore, 0);
    return true;
}

/* In a fiber the stack in use is part of the image, and the process's own is the main fiber's. */
static char *lowest_of_main_stack(const image_survivors *s) {
    char *low = stack_pointer(&s->resume);
    if (EG(active_fiber) && EG(main_fiber_context)) {
        low = EG(main_fiber_context)->handle;
    }
    return low - RED_ZONE;
}

static bool save_stack(image_survivors *s) {
    const char *top = (const char *)samovar_image->stack_top;
    s->stack_low = lowest_of_main_stack(s);
    s->stack_len = (size_t)(top - s->stack_low);
    if (s->stack_low > top || s->stack_len > s->stack_room) {
        return false;
    }
    memcpy(s->stack_copy, s->stack_low, s->stack_len);
    return true;
}

static bool start(image_survivors *s) {
    s->stack_room = STACK_BYTES_MAX;
    s->stack_copy = samovar_shared_memory(s->stack_room);
    /* Last, because it copies what the worker has changed so far. */
    return s->stack_copy && samovar_kernel_start(s) && prepare_restore(s) && samovar_hot_start(s) &&
           samovar_kernel_settle(s);
}

/* A process that a request forks is no worker: it must reach neither the survivors nor the ring. */
void samovar_forked(void) {
    samovar_survivors = NULL;
    samovar_detach();
}

bool samovar_rollback_here(void) {
    image_survivors *s = samovar_shared_memory(sizeof *s);
    if (!s) {
        return false;
    }
    samovar_reseed_prepare();
    samovar_survivors = s;
    if (!start(s)) {
        samovar_survivors = NULL;
        return false;
    }
    getcontext(&s->resume);
    s = samovar_survivors;
    if (s->rollbacks == 0) {
        if (!save_stack(s)) {
            samovar_survivors = NULL;
            return false;
        }
    } else {
        samovar_rolled_back(s->rollback_ns, s->hot_count);
    }
    samovar_reseed();
    return true;
}
