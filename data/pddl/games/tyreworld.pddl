; Flat tyres are replaced with the spare wheels and the tools that are in the boot of the car.
(define (domain tyreworld)
  (:types
    thing container hub - object
    tool wheel nut - thing)
  (:constants wrench pump jack - tool)
  (:predicates
    (isopen ?container - container)
    (closed ?container - container)
    (unlocked ?container - container)
    (in ?thing - thing ?container - container)
    (have ?thing - thing)
    (loose ?nut - nut ?hub - hub)
    (tight ?nut - nut ?hub - hub)
    (on-ground ?hub - hub)
    (not-on-ground ?hub - hub)
    (fastened ?hub - hub)
    (unfastened ?hub - hub)
    (free ?hub - hub)
    (on ?wheel - wheel ?hub - hub)
    (inflated ?wheel - wheel)
    (not-inflated ?wheel - wheel)
    (intact ?wheel - wheel))

  (:action open
    :parameters (?container - container)
    :precondition (and (unlocked ?container) (closed ?container))
    :effect (and (isopen ?container) (not (closed ?container))))
  (:action close
    :parameters (?container - container)
    :precondition (isopen ?container)
    :effect (and (closed ?container) (not (isopen ?container))))
  (:action fetch
    :parameters (?thing - thing ?container - container)
    :precondition (and (isopen ?container) (in ?thing ?container))
    :effect (and (have ?thing) (not (in ?thing ?container))))
  (:action put-away
    :parameters (?thing - thing ?container - container)
    :precondition (and (isopen ?container) (have ?thing))
    :effect (and (in ?thing ?container) (not (have ?thing))))

  ; Nuts are loosened and tightened on the ground, and taken off and put on above it.
  (:action loosen
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (on-ground ?hub) (tight ?nut ?hub))
    :effect (and (loose ?nut ?hub) (not (tight ?nut ?hub))))
  (:action tighten
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (on-ground ?hub) (loose ?nut ?hub))
    :effect (and (tight ?nut ?hub) (not (loose ?nut ?hub))))
  (:action jack-up
    :parameters (?hub - hub)
    :precondition (and (have jack) (on-ground ?hub))
    :effect (and (not-on-ground ?hub) (not (on-ground ?hub)) (not (have jack))))
  (:action jack-down
    :parameters (?hub - hub)
    :precondition (not-on-ground ?hub)
    :effect (and (on-ground ?hub) (have jack) (not (not-on-ground ?hub))))
  (:action undo
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (not-on-ground ?hub) (fastened ?hub) (loose ?nut ?hub))
    :effect (and (have ?nut) (unfastened ?hub) (not (fastened ?hub)) (not (loose ?nut ?hub))))
  (:action do-up
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (have ?nut) (not-on-ground ?hub) (unfastened ?hub))
    :effect (and (loose ?nut ?hub) (fastened ?hub) (not (unfastened ?hub)) (not (have ?nut))))

  (:action remove-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (on ?wheel ?hub))
    :effect (and (have ?wheel) (free ?hub) (not (on ?wheel ?hub))))
  (:action put-on-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (have ?wheel) (not-on-ground ?hub) (unfastened ?hub) (free ?hub))
    :effect (and (on ?wheel ?hub) (not (free ?hub)) (not (have ?wheel))))
  (:action inflate
    :parameters (?wheel - wheel)
    :precondition (and (have pump) (intact ?wheel) (not-inflated ?wheel))
    :effect (and (inflated ?wheel) (not (not-inflated ?wheel)))))
