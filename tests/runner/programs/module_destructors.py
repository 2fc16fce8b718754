# says = "Objects that live to the end are destroyed then: __del__ is called."
class Resource:
    def __del__(self):
        print("released")


resource = Resource()
print("end")
