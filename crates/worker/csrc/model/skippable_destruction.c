/* Objects whose destruction has observable effects. A destructor runs code, and freeing a
 * connection closes it. Most objects only free memory, which the rollback does at a lower cost:
 * the end of an object writes to the object, and the rollback would have to copy that page back. */
#include "model/skippable_destruction.h"
#include "boundary.h"
#include <zend_closures.h>
#include <zend_fibers.h>
#include <zend_generators.h>
#include <zend_observer.h>

/* Classes of extensions with their own functions to free objects, whose objects hold only memory
 * and other values. Classes derived from them are included. */
static const char *const memory_only[] = {
    "arrayiterator",
    "arrayobject",
    "closure",
    "dateinterval",
    "dateperiod",
    "datetime",
    "datetimeimmutable",
    "datetimezone",
    "reflectionattribute",
    "reflectionclass",
    "reflectionclassconstant",
    "reflectionfunctionabstract",
    "reflectionparameter",
    "reflectionproperty",
    "reflectiontype",
    "spldoublylinkedlist",
    "splfixedarray",
    "splheap",
    "splobjectstorage",
    "splpriorityqueue",
    "weakmap",
    "weakreference",
};
enum { MEMORY_ONLY = sizeof memory_only / sizeof memory_only[0] };

/* The ones that this PHP has. */
static const zend_class_entry *harmless[MEMORY_ONLY];
static uint32_t harmless_count;

/* By handle: objects of the boot that hold more than memory, and that no end of a request frees.
 * NULL for other handles. */
static zend_object **held;
static uint32_t held_count;

/* True if no object's destruction has observable effects, and no code has run since that was
 * determined. */
SAMOVAR_OF_REQUEST static bool known_unseen;

static void find_classes(void) {
    harmless_count = 0;
    for (size_t i = 0; i < MEMORY_ONLY; i++) {
        const zend_class_entry *found =
            zend_hash_str_find_ptr(CG(class_table), memory_only[i], strlen(memory_only[i]));
        if (found && found->type == ZEND_INTERNAL_CLASS) {
            harmless[harmless_count++] = found;
        }
    }
}

static bool is_harmless(const zend_class_entry *class) {
    for (; class; class = class->parent) {
        for (uint32_t i = 0; class->type == ZEND_INTERNAL_CLASS && i < harmless_count; i++) {
            if (class == harmless[i]) {
                return true;
            }
        }
    }
    return false;
}

static bool has_destructor(const zend_object *object) {
    return object->ce->destructor || object->handlers->dtor_obj != zend_objects_destroy_object;
}

/* Returns true if destruction of the object runs code. For generators and fibers that is their
 * `finally`. The iterators of SPL run none: they close their files when they are destructed, not
 * when they are freed. */
static bool runs_code(const zend_object *object) {
    return object->ce->destructor || object->ce == zend_ce_generator || object->ce == zend_ce_fiber;
}

/* An object that holds more than memory, such as a connection, must outlive the end of a
 * request, which empties the global scope. An additional reference keeps it. Destructors of
 * classes still run. If the end of the object runs no code, the object is marked here as
 * destructed, as PHP does at the end of the script. So no request has to do it. */
static void prepare(uint32_t handle, zend_object *object) {
    if (object->handlers->free_obj != zend_object_std_dtor) {
        GC_ADDREF(object);
        held[handle] = object;
    }
    if (!runs_code(object)) {
        GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
    }
}

/* The error handler may create objects, in any step of the end. */
static void on_error(int type, zend_string *file, uint32_t line, zend_string *message) {
    (void)type, (void)file, (void)line, (void)message;
    known_unseen = false;
}

void samovar_skippable_startup(void) {
    zend_observer_error_register(on_error);
}

void samovar_skippable_prepare(void) {
    find_classes();
    held_count = EG(objects_store).top;
    held = pecalloc(held_count, sizeof *held, 1);
    for (uint32_t i = 1; i < held_count; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (IS_OBJ_VALID(object)) {
            prepare(i, object);
        }
    }
}

/* Inline, because all objects of a large boot pass here at the end of a request. */
static inline bool is_freed_seen(uint32_t handle, const zend_object *object) {
    return object->handlers->free_obj != zend_object_std_dtor &&
           !(handle < held_count && held[handle] == object) && !is_harmless(object->ce);
}

bool samovar_is_freed_seen(uint32_t handle, const zend_object *object) {
    return is_freed_seen(handle, object);
}

static inline bool is_skippable(uint32_t handle, const zend_object *object) {
    return ((OBJ_FLAGS(object) & IS_OBJ_DESTRUCTOR_CALLED) || !has_destructor(object)) &&
           !is_freed_seen(handle, object);
}

static bool all_are_skippable(void) {
    const zend_objects_store *store = &EG(objects_store);
    for (uint32_t i = 1; i < store->top; i++) {
        const zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && !is_skippable(i, object)) {
            return false;
        }
    }
    return true;
}

bool samovar_objects_are_skippable(void) {
    known_unseen = known_unseen || all_are_skippable();
    return known_unseen;
}

bool samovar_objects_skipped(void) {
    return known_unseen;
}
