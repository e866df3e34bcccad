struct Queue {
    volatile int* items;   // -1 where nobody has put anything yet
    unsigned int* head;    // slots that were taken
    unsigned int* tail;    // slots that were given out to put something in
    unsigned int* open;    // items that were put, and are not done
    unsigned int room;     // slots there are
};
